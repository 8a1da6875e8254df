"""What a BenchmarkRun means: its checks, its trials, its admission and its summary. Pure."""
