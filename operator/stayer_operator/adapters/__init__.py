"""Foreign libraries, one a module: the Kubernetes API over aiohttp, memory stand-ins."""
