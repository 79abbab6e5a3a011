"""Prints a key set and a JWT that counts for a day, as JSON. Runs where dragoman's extra `auth` is installed."""

import json
import sys
import time

from joserfc import jwt
from joserfc.jwk import ECKey

issuer, audience = sys.argv[1:]
key = ECKey.generate_key("P-256")
now = int(time.time())
claims = {"iss": issuer, "aud": audience, "sub": "bench", "iat": now, "exp": now + 86_400, "scope": "a2a"}
token = jwt.encode({"alg": "ES256", "kid": "bench", "typ": "at+jwt"}, claims, key)
public = {**key.as_dict(private=False), "kid": "bench", "alg": "ES256", "use": "sig"}
print(json.dumps({"jwks": {"keys": [public]}, "token": token}))
