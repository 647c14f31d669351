// Package inprocess connects a server's own parts to its API without a socket.
//
// It owns the Door, through which requests reach the API once there is one, and the users as whom the parts
// call. Package server makes the Door first and opens it when the API is built; loops, admission and joining
// take a *rest.Config from it, so they use client-go as any other client. It calls apiserver for the transport,
// and controllers/reconcile for the object that led to a write.
//
// Promises: writes carry the fence of the term that they were made for and the object that
// led to them; a request before Open is an error, never a panic.
//
// Tested here with an API that answers, and by everything that runs on a server.
package inprocess
