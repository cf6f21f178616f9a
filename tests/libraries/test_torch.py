"""torch on the CPU and arrays of the host backend, by the exchange table where torch has it."""

import pytest

import gpuglue as gg

torch = pytest.importorskip("torch")


def test_torch_takes_an_array_without_a_copy(device):
    array = gg.arange(12, dtype="f4", device=device).reshape(3, 4)
    for view in (array, array.T, array[1:, ::2]):
        tensor = torch.from_dlpack(view)
        assert tensor.data_ptr() == view.ptr and tensor.tolist() == view.tolist()
    torch.from_dlpack(array).mul_(2)
    assert array.tolist()[0] == [0, 2, 4, 6]


@pytest.mark.parametrize("take", [gg.from_dlpack, lambda a: gg.asarray(a, device="host:0")])
def test_a_tensor_is_taken_without_a_copy(device, take):
    tensor = torch.arange(12.0).reshape(3, 4)
    for view in (tensor, tensor.T, tensor[1:, ::2], tensor[:0]):
        array = take(view)
        assert array.tolist() == view.tolist() and (not view.numel() or array.ptr == view.data_ptr())


def test_a_tensor_lives_as_long_as_its_array(device):
    array = gg.asarray(torch.full((1000,), 7.0), device=device)
    others = [torch.full((1000,), 9.0) for _ in range(50)]
    assert (array.get() == 7).all() and len(others) == 50


def test_an_array_lives_as_long_as_its_tensor(device):
    tensor = torch.from_dlpack(gg.full(1000, 7.0, device=device))
    others = [gg.full(1000, 9.0, device=device) for _ in range(50)]
    assert (tensor == 7).all() and len(others) == 50
