"""Which names of vLLM headstart's own source touches.

Read from the source: what is imported, members of what is imported, methods that are overridden,
and what is used of ``self`` in a class of vLLM's, or of a parameter of a type of vLLM's. What is
reached through objects without a type is listed by hand.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator

from headstart.errors import CompatibilityError
from tools.vllm_seams.seams import Seam, Seams, digest
from tools.vllm_seams.source_tree import (
    Function,
    SourceTree,
    bound_names,
    dotted_name,
    imported_as,
    is_self,
)

_CORE_CLIENT = "vllm.v1.engine.core_client"
_RENDERER = "vllm.renderers.base.BaseRenderer"
_RUNNER = "vllm.v1.worker.gpu_model_runner.GPUModelRunner"
BY_HAND = {
    "headstart/engine/engine_client.py": (
        "vllm.v1.engine.async_llm.AsyncLLM.generate",
        "vllm.v1.engine.async_llm.AsyncLLM.collective_rpc",
        "vllm.v1.engine.async_llm.AsyncLLM.shutdown",
        "vllm.outputs.RequestOutput",
        "vllm.outputs.CompletionOutput",
        f"{_RUNNER}.get_encoder_timing_stats",
        f"{_RENDERER}._mm_timing_registry",
    ),
    "headstart/engine/engine_memory.py": (
        f"{_CORE_CLIENT}.AsyncMPClient.call_utility_all_async",
        f"{_CORE_CLIENT}.AsyncMPClient._call_utility_async",
        f"{_CORE_CLIENT}.MPClient.core_engines",
        "vllm.v1.engine.core.EngineCoreProc._invoke_utility_method",
    ),
    "headstart/engine/scheduler.py": (
        "vllm.v1.engine.core.EngineCore.step",
        "vllm.v1.spec_decode.custom_class_proposer.create_custom_proposer",
        "vllm.config.SpeculativeConfig",
        "vllm.v1.core.kv_cache_coordinator.KVCacheCoordinator.single_type_managers",
        "vllm.v1.core.kv_cache_manager.KVCacheManager.evict_blocks",
        "vllm.v1.core.single_type_kv_cache_manager.SingleTypeKVCacheManager.req_to_blocks",
        "vllm.v1.structured_output.StructuredOutputManager.validate_tokens",
    ),
    "headstart/engine/target.py": (
        f"{_RENDERER}.render_cmpl_async",
        f"{_RENDERER}.render_messages_async",
        f"{_RENDERER}.default_cmpl_tok_params",
    ),
    "headstart_events/beside/event_engine.py": (
        "vllm.v1.engine.llm_engine.LLMEngine.step",
        "vllm.v1.engine.llm_engine.LLMEngine.add_request",
        f"{_RENDERER}.render_cmpl",
    ),
    "headstart/engine/vllm_patches.py": (
        f"{_RUNNER}.sample_tokens",
        f"{_RUNNER}.speculative_config",
    ),
    "headstart/models/registration.py": ("vllm.plugins.load_general_plugins",),
    "headstart_server/middleware.py": (
        "vllm.entrypoints.launchers.api_server.app_state.init_app_state",
        "vllm.entrypoints.serve.middleware.register.init_entrypoints_middleware",
    ),
}


def seams_now(own: SourceTree, engine: SourceTree, version: str) -> Seams:
    """What headstart touches in this vLLM, with its digests there."""
    users: dict[str, set[str]] = defaultdict(set)
    for module in own.modules():
        file = module.replace(".", "/")
        file += "/__init__.py" if own.is_package(module) else ".py"
        for name in touched(own, engine, module):
            users[name].add(file)
        for name in BY_HAND.get(file, ()):
            users[name].add(file)
    digests = {name: digest(engine, name) for name in users}
    if unknown := sorted(name for name, found in digests.items() if found is None):
        raise CompatibilityError(
            f"vLLM has no {', '.join(unknown)}, which headstart imports or which"
            " tools/vllm_seams/touched.py lists: see what took their place, and use that"
        )
    return Seams(
        version,
        {
            name: Seam(found, tuple(sorted(users[name])))
            for name, found in digests.items()
            if found is not None and found != "module"
        },
    )


def touched(own: SourceTree, engine: SourceTree, module: str) -> set[str]:
    """Names of vLLM that one of our modules touches."""
    tree, imports = own.module(module), _imports(own, engine, module)
    assert tree is not None
    names = {name for name in imports.values() if name not in engine.roots}
    members: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and (name := dotted_name(node.value)) in imports:
            members.add(f"{imports[name]}.{node.attr}")
        elif isinstance(node, Function):
            members |= set(_of_parameters(node, imports))
        elif isinstance(node, ast.ClassDef):
            bases = set(_bases(own, engine, module, node))
            members |= {f"{base}.{name}" for base in bases for name in _used_of_self(node)}
    # A member that vLLM does not define is our own, or one of a library's below it.
    return names | {name for name in members if engine.find(name) is not None}


def _imports(own: SourceTree, engine: SourceTree, module: str) -> dict[str, str]:
    tree = own.module(module)
    assert tree is not None
    bound: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom | ast.Import):
            bound |= imported_as(node, module, own.is_package(module))
    return {local: name for local, name in bound.items() if name.split(".")[0] in engine.roots}


def _of_parameters(function: Function, imports: dict[str, str]) -> Iterator[str]:
    """What a function uses of those parameters whose type is vLLM's."""
    given = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    types = {
        one.arg: imports[dotted_name(one.annotation)]
        for one in given
        if one.annotation is not None and dotted_name(one.annotation) in imports
    }
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute) and (name := dotted_name(node.value)) in types:
            yield f"{types[name]}.{node.attr}"


def _bases(own: SourceTree, engine: SourceTree, module: str, node: ast.ClassDef) -> Iterator[str]:
    """The classes of vLLM that a class of ours derives from, also through others of ours."""
    imports = _imports(own, engine, module)
    for base in node.bases:
        name = dotted_name(base)
        found = own.find(f"{module}.{name}") if name else None
        if name in imports:
            yield imports[name]
        elif found is not None and isinstance(found.node, ast.ClassDef):
            yield from _bases(own, engine, found.module, found.node)


def _used_of_self(node: ast.ClassDef) -> set[str]:
    """What a class defines, and what its methods use of ``self`` and of ``super()``."""
    names = {name for inner in node.body for name in bound_names(inner)}
    for inner in ast.walk(node):
        if isinstance(inner, ast.Attribute) and (is_self(inner.value) or _is_super(inner.value)):
            names.add(inner.attr)
    return names


def _is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and dotted_name(node.func) == "super"
