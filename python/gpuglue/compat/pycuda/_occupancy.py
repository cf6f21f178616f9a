"""What limits the number of blocks that a multiprocessor runs at the same time."""

from . import driver


class DeviceData:
    """Limits of a device.

    Parameters
    ----------
    dev : Device, optional
        The device. None is that of the current context.

    Attributes
    ----------
    max_threads : int
        Threads of a block, at most.
    warp_size : int
        Threads of a warp.
    warps_per_mp : int
        Resident warps of a multiprocessor, at most.
    thread_blocks_per_mp : int
        Resident blocks of a multiprocessor: 8, as in PyCUDA.
    registers : int
        Registers of a block, at most.
    shared_memory : int
        Shared memory of a block in bytes.
    smem_granularity : int
        Threads that access shared memory at the same time.
    smem_alloc_granularity : int
        Shared memory is allocated in multiples of so many bytes.

    Examples
    --------
    >>> tools.DeviceData().max_threads
    1024
    """

    def __init__(self, dev=None):
        self._device = dev = dev if dev is not None else driver.Context.get_device()
        self.max_threads, self.warp_size = dev.max_threads_per_block, dev.warp_size
        self.warps_per_mp = dev.max_threads_per_multiprocessor // self.warp_size
        self.thread_blocks_per_mp = 8
        self.shared_memory = dev.max_shared_memory_per_block
        self.smem_granularity, self.smem_alloc_granularity = 32, 128
        self.register_allocation_unit = "warp"

    registers = property(lambda self: self._device.max_registers_per_block, doc="Registers of a block, at most; Level Zero has no number.")

    def align_bytes(self, word_size=4):
        """Return the alignment of arrays whose accesses coalesce.

        Parameters
        ----------
        word_size : {4, 8, 16}
            Bytes of an element.

        Returns
        -------
        int
            Bytes.

        Raises
        ------
        ValueError
            If the word size is another.

        Examples
        --------
        >>> tools.DeviceData().align_bytes(8)
        128
        """
        if word_size not in (4, 8, 16):
            raise ValueError(f"align_bytes: expected a word of 4, 8 or 16 bytes, got {word_size}")
        return 64 if word_size == 4 else 128

    def align(self, bytes, word_size=4):
        """Round a size up to the alignment.

        Parameters
        ----------
        bytes : int
            Size in bytes.
        word_size : {4, 8, 16}
            Bytes of an element.

        Returns
        -------
        int
            Size in bytes.

        Examples
        --------
        >>> tools.DeviceData().align(100)
        128
        """
        return _up(bytes, self.align_bytes(word_size))

    def align_words(self, word_size):
        """Return the alignment in elements.

        Parameters
        ----------
        word_size : {4, 8, 16}
            Bytes of an element.

        Returns
        -------
        int
            Number of elements.

        Examples
        --------
        >>> tools.DeviceData().align_words(4)
        16
        """
        return self.align_bytes(word_size) // word_size

    def align_dtype(self, elements, dtype_size):
        """Round a number of elements up to the alignment.

        Parameters
        ----------
        elements : int
            Number of elements.
        dtype_size : {4, 8, 16}
            Bytes of an element.

        Returns
        -------
        int
            Number of elements.

        Examples
        --------
        >>> tools.DeviceData().align_dtype(100, 4)
        112
        """
        return _up(elements, self.align_words(dtype_size))

    def coalesce(self, thread_count):
        """Round a number of threads up to a multiple of 16.

        Parameters
        ----------
        thread_count : int
            Number of threads.

        Returns
        -------
        int
            Number of threads.

        Examples
        --------
        >>> tools.DeviceData().coalesce(20)
        32
        """
        return _up(thread_count, 16)

    @staticmethod
    def make_valid_tex_channel_count(size):
        """Round a number of channels up to one that textures can have.

        Parameters
        ----------
        size : int
            Number of channels, up to 4.

        Returns
        -------
        int
            1, 2 or 4.

        Raises
        ------
        ValueError
            If the number is greater than 4.

        Examples
        --------
        >>> tools.DeviceData.make_valid_tex_channel_count(3)
        4
        """
        for valid in (1, 2, 4):
            if size <= valid:
                return valid
        raise ValueError(f"a texture has up to 4 channels, got {size}")


class OccupancyRecord:
    """How many blocks of a kernel a multiprocessor runs at the same time.

    Parameters
    ----------
    devdata : DeviceData
        The device.
    threads : int
        Threads of a block.
    shared_mem : int, default 0
        Shared memory of a block in bytes.
    registers : int, default 0
        Registers of a thread.

    Attributes
    ----------
    tb_per_mp : int
        Number of blocks.
    limited_by : {'device', 'warps', 'regs', 'smem'}
        What limits it.
    warps_per_mp : int
        Number of warps.
    occupancy : float
        Their share of the possible number.

    Raises
    ------
    ValueError
        If a block has more threads than the device allows.

    Examples
    --------
    >>> 0 < tools.OccupancyRecord(tools.DeviceData(), 256).occupancy <= 1
    True
    """

    def __init__(self, devdata, threads, shared_mem=0, registers=0):
        if not 0 < threads <= devdata.max_threads:
            raise ValueError(f"OccupancyRecord: expected 1 to {devdata.max_threads} threads, got {threads}")
        warps = -(-threads // devdata.warp_size)
        limits = {"device": devdata.thread_blocks_per_mp, "warps": devdata.warps_per_mp // warps}
        if registers:
            limits["regs"] = devdata.registers // (_up(registers * devdata.warp_size, 256) * warps)
        if shared_mem:
            limits["smem"] = devdata.shared_memory // _up(shared_mem, devdata.smem_alloc_granularity)
        self.limited_by = min(limits, key=limits.get)
        self.tb_per_mp = limits[self.limited_by]
        self.warps_per_mp = self.tb_per_mp * warps
        self.occupancy = self.warps_per_mp / devdata.warps_per_mp


def _up(value, multiple):
    return -(-value // multiple) * multiple
