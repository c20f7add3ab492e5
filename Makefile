# Every target sets up what it needs on a fresh machine.

STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2

.PHONY: demo test lint bench bench-short bench-docs bench-profiles bench-go fuzz peers bench-peers

# The main job on embedded servers: calls, their timelines, the architecture.
demo:
	go run ./cmd/catena demo

# Everything, with the race detector. Real peers are installed where possible; the
# gRPC server is a dependency of another module, which keeps it out of ours.
test: peers
	go test -race -timeout 10m ./...
	cd bench && go test -race -timeout 5m ./internal/grpc

# The servers and proxies that interop tests start on loopback.
peers:
	sh scripts/test-peers

# What `make bench` measures with and against.
bench-peers:
	sh scripts/test-peers bench

lint:
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo "gofmt would change these files"; exit 1; }
	go vet ./...
	go run $(STATICCHECK) ./...

# Catena against its peers, in interleaved rounds: about half an hour.
bench: bench-peers
	cd bench && go run ./cmd/bench -json results.json

# The rows that have a target, shortly, held to floors: about two minutes. CI runs it.
bench-short: peers
	cd bench && go run ./cmd/bench -short

# All of it, drawn into docs/performance.md and docs/performance/.
bench-docs: bench-peers
	cd bench && go run ./cmd/bench -docs ../docs

# Profiles of the hot paths as text, into docs/performance/.
bench-profiles: bench-peers
	sh scripts/profiles

# Small calls against net/http, allocations and the cost of parts, in minutes.
bench-go:
	go test -run '^$$' -bench . -benchmem . ./interceptors ./connection ./connection/http1

# One minute for each fuzz target.
fuzz:
	sh scripts/fuzz 60s
