// Package controllers owns the list of the cluster's control loops and runs all
// of them for one leadership term. A controller is a folder, whose New returns it,
// and a line in all.go.
//
// Run begins once for each term that the server leads. The controllers use client-go and, of this project, pure packages,
// so they could run against any Kubernetes API.
//
// It promises: Run returns only after every controller's last goroutine has;
// one controller that fails is started again and does not stop the others; a
// new term looks at every object once.
//
// The scheduler is a control loop too, but has a Config of its own: see
// controllers/scheduler.
//
// Tests run everything together in a synctest bubble over client-go's fakes.
package controllers
