"""The one list of limits that code on both sides of the binding shares.

The build turns the constants below into `limits.h` (namespace kvstrata::limits, snake case as here
with a leading k);
relations between them are asserted in tests/unit/store/test_limits.py. Sizes are bytes, times
milliseconds unless named.
"""

from typing import Final

PROTOCOL_VERSION: Final = 1  # transport/PROTOCOL.md, section 9.
DATA_PORT: Final = 18400
HTTP_PORT: Final = 18480
HTTP_CONNECTION_COUNT_MAX: Final = 64  # Probes, scrapers and a few people.

# Wire: what a peer may make us hold before anything is checked (PROTOCOL.md, sections 1 and 2).
HELLO_BODY_BYTES_MAX: Final = 16_384
CAPSULE_BODY_BYTES_MAX: Final = 1 << 20  # 512 keys of 2 KiB; clients split larger batches.
# Entries are parsed and looked up within one turn of a shard's loop: 512 take some 100 us from
# cold memory.
CAPSULE_ENTRY_COUNT_MAX: Final = 512
KEY_BYTES_MAX: Final = 4_096
ATTRIBUTE_BYTES_MAX: Final = 1_024  # Kept with an object: dtype and shape fit many times over.
POOL_NAME_BYTES_MAX: Final = 64
SECRET_BYTES_MAX: Final = 256
UNIX_PATH_BYTES_MAX: Final = 107  # What Linux has room for.

# Each of the two rings of a connection through shared memory. Both ends copy at the same time from
# what lies in their caches, and a ring's pages are taken as bytes go round.
RING_BYTES: Final = 256 * 1024
# Values up to here go through a ring also where others go straight to and from a region: what is
# so small is copied twice in less time than it takes to look up where it belongs.
IN_CAPSULE_BYTES: Final = 4_096

# Regions of one connection. Each is a mapping of the node's, of which a process has 65,530.
REGION_COUNT_MAX: Final = 256

# What a Valkey client may make us hold of one command. All as Valkey, whose clients know its
# bounds, but the count of arguments: Valkey takes 2,147,483,647, which nothing sends.
RESP_LINE_BYTES_MAX: Final = 65_536  # An inline command, or a line with a count or length.
RESP_ARGUMENT_COUNT_MAX: Final = 1 << 20
RESP_ARGUMENT_BYTES_MAX: Final = 512 << 20
RESP_UNAUTHENTICATED_ARGUMENT_COUNT_MAX: Final = 10
RESP_UNAUTHENTICATED_ARGUMENT_BYTES_MAX: Final = 16_384
# From here on an argument's way into its place costs more than a system call of its own.
RESP_LARGE_ARGUMENT_BYTES_MIN: Final = 16_384

# A client that has died keeps what it retained for so long at most.
RETENTION_MS_MAX: Final = 3_600_000
# Of one pool: keys named in all its retentions together. At 200 bytes each, if every one has a
# retention to itself, they take 13 MB.
RETENTION_CLAIM_COUNT_MAX: Final = 65_536

SLOT_COUNT: Final = 16_384  # As Valkey cluster.
SHARD_COUNT_MAX: Final = 64
POOL_COUNT_MAX: Final = 1_024

# A chunk is hashed, and a part of one re-hashed, within one turn of a shard's loop: 512 KiB from
# cold memory is
# some 50 us, so a range read with two ragged ends stays below the 200 us that a loop may stall.
CHUNK_BYTES: Final = 512 * 1024
PAGE_BYTES: Final = 4_096  # Extents are whole pages: direct I/O and memory registration need that.
RECORD_BYTES_INLINE_MAX: Final = 8_192  # A record with its value inside; larger values get extents.

SEGMENT_BYTES_MIN: Final = 1 << 20
SEGMENT_BYTES_MAX: Final = 64 << 20
MEMORY_BYTES_MIN: Final = 16 << 20

CREDITS_DEFAULT: Final = 128
CREDITS_MAX: Final = 1_024
DEADLINE_MS_DEFAULT: Final = 10_000
