"""For the programs of test_dask.py."""


def error_of(function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except Exception as error:
        return error
    raise AssertionError(f"{function} raised nothing")
