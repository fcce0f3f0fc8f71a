"""The page of a reproduction: one HTML file that needs nothing else, and no network."""

from xpline.report.page import page

__all__ = ["page"]
