"""Which agent, may they, how much: everything decided between understanding a request and carrying it out."""
