//! The Python extension of xpline; thin.
