// Package systemd has the units by which servers and agents run on machines with systemd, as text.
//
// The files beside it are the units: `setpoint install` writes them as they are, and who installs by hand copies them. What differs from
// machine to machine stands in the file that EnvironmentFile= names.
package systemd
