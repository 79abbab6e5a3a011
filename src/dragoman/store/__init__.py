"""Where logs are kept. Each module is one implementation of `ports.Store`; none imports another kind of adapter."""
