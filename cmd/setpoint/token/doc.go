// Package token is `setpoint token`: it makes, lists and ends the tokens with which machines join.
//
// It owns the flags of these commands and what they print. What a token is, and who may join with it, is internal/trust/jointoken's; a
// token for servers is made by a server (server/admin), which seals it. What all commands share comes in Shell.
//
// Tested by the scripts token and join of cmd/setpoint.
package token
