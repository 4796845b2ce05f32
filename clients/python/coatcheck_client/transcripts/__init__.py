"""Readers of what agents leave on disk: every known shape becomes a ``Transcript``."""

from coatcheck_client.transcripts.reading import parse_transcript, read_transcript
from coatcheck_client.transcripts.transcript import Transcript

__all__ = ["Transcript", "parse_transcript", "read_transcript"]
