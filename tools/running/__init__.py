"""What the verbs that run a robot share: their options, its boards, its loop."""
