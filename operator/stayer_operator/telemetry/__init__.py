"""What the operator tells people and machines about itself: metrics and logs. Decides nothing."""
