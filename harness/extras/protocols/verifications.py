"""The verifications of the test types that return items."""

from harness.extras.protocols import compression, encryption, items
from harness.extras.protocols.items import ItemsVerification

JSON_ITEMS = ItemsVerification(check_modules=(items,))
JSON_COMPRESSED = ItemsVerification(
    check_modules=(compression,), headers=compression.HEADERS, observer=compression.observe_compression
)
JSON_TLS = ItemsVerification(check_modules=(encryption,), observer=encryption.observe_encryption)
