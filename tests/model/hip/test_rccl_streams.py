"""RCCL's own library on AMD's runtime: order on streams, captures, groups, borrowed handles, and a rank that dies."""

from test_rccl import KEEPS_SCRATCH, outputs  # finds the next one

from test_communicator_device import BORROWED, GROUPS, ORDER  # isort: skip


def test_operations_are_ordered_as_all_others_and_can_be_captured():
    outputs(ORDER, 2, **KEEPS_SCRATCH)


def test_messages_of_a_group_progress_together():
    outputs(GROUPS, 2, **KEEPS_SCRATCH)


def test_a_handle_is_borrowed_from_other_code():
    outputs(BORROWED, 2, **KEEPS_SCRATCH)
