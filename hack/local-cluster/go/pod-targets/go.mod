module stayer.local/pod-targets

go 1.26.0
