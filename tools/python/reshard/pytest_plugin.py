# SPDX-License-Identifier: BSD-3-Clause
"""Found by pytest if the wheel is installed; in a source tree, use `-p reshard.pytest_plugin`."""

import pytest

from ._local import LocalTensor


@pytest.fixture
def local_tensor():
    """local_tensor(whole, mesh, placements): every rank's shard in this process."""
    return LocalTensor.of
