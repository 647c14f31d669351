// Package forwardpb is generated from forward.proto: the messages of the service
// that replicas of one store offer each other, and in forwardpbconnect its client
// and handler. It is used by raftstore/forward only, which tests it.
package forwardpb

//go:generate sh -c "cd $(git rev-parse --show-toplevel) && protoc --plugin=protoc-gen-go=$(go tool -n protoc-gen-go) --plugin=protoc-gen-connect-go=$(go tool -n protoc-gen-connect-go) --go_out=. --go_opt=paths=source_relative --connect-go_out=. --connect-go_opt=paths=source_relative raftstore/forward/forwardpb/forward.proto"
