"""The recorder of the agent pod: rounds, time, snapshots, and the end of an episode.

Deciding is pure (`rounds`, `prompts`, `steps`, `cursor`, `outcome`, `gold`); the rest is the shell
around it. The recorder sees the workspace read-only and believes nothing that the task container
says.
"""
