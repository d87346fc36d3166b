"""Who computes where, on machines larger and smaller than this one."""

import pytest

pytest.importorskip("vllm")

from headstart_events.beside.placement import Device, Machine, Placement, alone_on_two, place

BIND = "VLLM_CPU_OMP_THREADS_BIND"


def cores(*numbers, environment=None, **target):
    return place(Machine(Device.CPU, cores=numbers), target, {}, environment or {})


def test_two_cores_are_one_each():
    placement = cores(0, 1)
    assert placement.target.environment == {BIND: "0"}
    assert placement.beside.cores == (1,)
    assert placement.beside.environment == {"OMP_NUM_THREADS": "1"}


def test_the_target_gets_most_of_many_cores():
    placement = cores(*range(2, 18))
    assert placement.target.environment[BIND].split(",") == [str(i) for i in range(2, 14)]
    assert placement.beside.cores == (14, 15, 16, 17)


def test_alone_a_target_gets_the_drafters_device_too():
    assert alone_on_two(Machine(Device.CPU, cores=(0, 1))).environment == {BIND: "0,1"}
    resources = alone_on_two(Machine(Device.GPU, gpus=("0", "1")))
    assert resources.arguments == {"tensor_parallel_size": 2}


def test_one_core_is_shared():
    assert cores(1) == Placement()


def test_what_the_caller_said_stays():
    assert cores(0, 1, 2, 3, environment={BIND: "0-1"}) == Placement()
    assert cores(0, 1, 2, 3, tensor_parallel_size=2) == Placement()


def gpus(count, target=None, beside=None):
    names = tuple(str(number) for number in range(count))
    return place(Machine(Device.GPU, gpus=names), target or {}, beside or {}, {})


def test_a_free_gpu_is_the_drafters():
    placement = gpus(4, {"tensor_parallel_size": 2})
    assert placement.target == Placement().target
    assert placement.beside.environment == {"CUDA_VISIBLE_DEVICES": "2"}


def test_a_drafter_on_several_gpus_needs_them_all_free():
    assert gpus(4, {}, {"tensor_parallel_size": 2}).beside.environment == {
        "CUDA_VISIBLE_DEVICES": "1,2"
    }
    assert not gpus(2, {}, {"tensor_parallel_size": 2}).beside.environment


def test_one_gpu_is_shared_by_memory_unless_the_caller_said():
    placement = gpus(1)
    share = "gpu_memory_utilization"
    assert placement.target.arguments[share] + placement.beside.arguments[share] < 1
    assert not gpus(1, {share: 0.5}).target.arguments
    assert not gpus(1, {}, {share: 0.2}).beside.arguments


def test_this_machine_can_be_looked_at():
    machine = Machine.here()
    assert machine.cores or machine.gpus
