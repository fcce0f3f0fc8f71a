//! The LATTester experiments as data, and their op streams.
