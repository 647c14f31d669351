// Package wireguardkey says where on its Node a node tells the others of its network, and which key of WireGuard it tells.
//
// Called by: agent/network/plan, which knows the rest of what is told, and apiserver/admission, which lets no node tell the
// key of another. It may call: nothing.
//
// Promises: two texts of one key are read as one. A table tests it.
package wireguardkey
