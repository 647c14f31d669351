// Package sessionpb is generated from session.proto: the messages of node
// sessions and of the servers' exchange about them, and in sessionpbconnect the
// clients and handlers. It is used by agent/node/session only, which tests it.
package sessionpb

//go:generate sh -c "cd $(git rev-parse --show-toplevel) && protoc --plugin=protoc-gen-go=$(go tool -n protoc-gen-go) --plugin=protoc-gen-connect-go=$(go tool -n protoc-gen-connect-go) --go_out=. --go_opt=paths=source_relative --connect-go_out=. --connect-go_opt=paths=source_relative agent/node/session/sessionpb/session.proto"
