"""The tasks that a pre-trained encoder is fine-tuned for, one module each. Chapters:
`book/tasks`."""
