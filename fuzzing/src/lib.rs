//! Program generators and oracles, usable from stable tests.
