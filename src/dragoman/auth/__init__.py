"""Who is calling, and who we are: credentials, and keys of our own. Parts of it need the extra `auth`."""
