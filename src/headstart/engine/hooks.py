"""The old name of `headstart.engine.scheduler`, for flags of vLLM that still name it."""

raise ImportError(
    "headstart.engine.hooks is now headstart.engine.scheduler: name"
    " headstart.engine.scheduler.HeadstartScheduler in --scheduler-cls and"
    " headstart.engine.scheduler.NoProposals in --speculative-config"
)
