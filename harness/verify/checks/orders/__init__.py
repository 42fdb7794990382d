"""The rules of the order service, a subject a file; the paragraphs are those of docs/requirements.md."""
