// Package filter tells whether sandboxes and containers are those that a CRI list asks for.
//
// It owns nothing. It calls the types of cri-api only. It promises that an empty filter, and every empty field of one, lets
// everything pass. Tested with tables.
package filter
