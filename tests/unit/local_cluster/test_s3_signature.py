"""Our one signed request is signed as Amazon's own library signs it."""

import datetime

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as BotoCredentials

from local_cluster.s3 import EMPTY_HASH, REGION, Credentials, sign


def test_the_signature_equals_botocores() -> None:
    moment = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)

    ours = sign("PUT", "10.96.0.20:7070", "/stayer", Credentials("key", "secret"), moment)

    request = AWSRequest("PUT", "http://10.96.0.20:7070/stayer")
    request.context["timestamp"] = ours["x-amz-date"]
    request.headers["x-amz-content-sha256"] = EMPTY_HASH
    request.headers["x-amz-date"] = ours["x-amz-date"]
    signer = SigV4Auth(BotoCredentials("key", "secret"), "s3", REGION)
    to_sign = signer.string_to_sign(request, signer.canonical_request(request))
    assert ours["x-amz-date"] == "20260102T030405Z"
    assert ours["authorization"].endswith(f"Signature={signer.signature(to_sign, request)}")
