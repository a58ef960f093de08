"""Records of layout.py and frames of section 4.2.3 as one call of struct reads or writes them: what the files of runs.py share."""
import struct

CONTENT_HEAD = struct.Struct(">BHIHHQ")  # type, channel and size of a frame, then class, weight and size of a body
FRAME_HEAD = struct.Struct(">BHI")
MESSAGE = struct.Struct("=10i").unpack_from  # a record of layout.py
ENTRY = struct.Struct("=8i").unpack_from  # up to ENTRY_CONSUMER
BASIC = 60
END = 0xCE
