package join

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/internal/trust/tokens"
)

// sharedAnswerMaxBytes bounds what is read of an answer with keys: base64 makes four bytes of three, and there is more than files.
const sharedAnswerMaxBytes = 2 * trust.SharedBytesMax

// ServerConfig is a server that joins.
type ServerConfig struct {
	// Servers are members, host:port; they are tried in this order.
	Servers []string
	// Token is the text of a token for servers.
	Token string
	// Name and Address are what the server will be called, and where the others will reach it, host:port.
	Name, Address string
	// Logger gets failed attempts; it is required.
	Logger *slog.Logger
}

// Granted is what a server gets that joins.
type Granted struct {
	// Shared are the files that all servers have, of the authority with the hash Pin.
	Shared trust.Shared
	Pin    string
	// Servers are the members at this moment.
	Servers []trust.Server
}

// Server gets what a server shares with the others, from one whose certificate authority has the hash in the token. It tries until it
// succeeds, the context ends, or a server gives an answer that trying again does not change.
func Server(ctx context.Context, config ServerConfig) (*Granted, error) {
	token, err := tokens.Parse(config.Token)
	if err != nil {
		return nil, err
	}
	if token.Role != tokens.RoleServer {
		return nil, ErrNotForServers
	}
	if len(config.Servers) == 0 {
		return nil, ErrNoServers
	}
	asked := serverRequest{Token: token.Text(), Name: config.Name, Address: config.Address}
	granted := &Granted{Pin: token.Pin}
	err = persist(ctx, config.Servers, config.Logger.With("server", config.Name), func(ctx context.Context, server string) error {
		return granted.ask(ctx, server, asked)
	})
	return granted, err
}

// anonymous is what the API calls whoever shows nothing.
const anonymous = "system:anonymous"

// isOfOlderServer reports whether an answer is one of the API, to which the path was nothing: the handler for servers says something else
// of a token, and asks for no name.
func isOfOlderServer(err error) bool {
	return errors.Is(err, ErrTokenRefused) || errors.Is(err, ErrRefused) && strings.Contains(err.Error(), anonymous)
}

func (g *Granted) ask(ctx context.Context, server string, asked serverRequest) error {
	client, done := pinnedClient(server, []string{g.Pin}, nil, nil)
	defer done()
	var answer serverResponse
	if err := post(ctx, client, "https://"+server+ServerPath, asked, &answer, sharedAnswerMaxBytes); err != nil {
		if isOfOlderServer(err) {
			return ErrOlderServer
		}
		return explainClocks(ctx, server, []string{g.Pin}, err)
	}
	g.Shared, g.Servers = answer.Files, nil
	for _, member := range answer.Servers {
		g.Servers = append(g.Servers, trust.Server{Name: member.Name, Endpoint: member.Address})
	}
	return nil
}
