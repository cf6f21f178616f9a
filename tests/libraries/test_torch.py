"""torch on the CPU and arrays of the host backend, through the exchange table if torch has it."""

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
def test_a_tensor_is_imported_without_a_copy(device, take):
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


def test_an_extension_takes_a_tensor_as_it_takes_an_array(device):
    extension = pytest.importorskip("zero_c")  # of examples/extensions
    tensor = torch.arange(6, dtype=torch.int32).reshape(2, 3)
    assert extension.zero(tensor) == (tensor.data_ptr(), (2, 3), 0, 32)
    gg.synchronize(device)
    assert not tensor.any()
    with pytest.raises(ValueError, match="C order"):
        extension.zero(tensor.T)


def test_dtypes_survive_a_round_trip(device):
    for name in ("float16", "float64", "complex64", "int8", "uint8", "int64", "bool"):
        tensor = torch.ones(5, dtype=getattr(torch, name))
        array = gg.from_dlpack(tensor)
        assert array.dtype.name == name and torch.from_dlpack(array).dtype is tensor.dtype


def test_a_tensor_may_be_assigned_and_copied_to(device):
    array = gg.zeros((2, 3), "f4", device=device)
    array[1] = torch.arange(3.0)
    assert array.tolist() == [[0, 0, 0], [0, 1, 2]]
    torch.from_dlpack(array)[0] = 5
    assert array.tolist() == [[5, 5, 5], [0, 1, 2]]
