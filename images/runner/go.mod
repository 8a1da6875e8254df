module stayer.dev/runner

go 1.26
