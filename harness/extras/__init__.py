"""What the core never imports but where it is registered; each part can be removed with its line there."""
