// Package wireguardkey says where on its Node a node tells the others of its network, and which key of WireGuard it tells.
//
// Admission lets no node tell the key of another. It may call: nothing.
//
// Promises: two texts of one key are read as one. A table tests it.
package wireguardkey
