"""What operators apply: database roles, Kubernetes manifests, Compose; `build.py` writes what is generated of it."""
