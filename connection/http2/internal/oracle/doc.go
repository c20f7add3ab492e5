// Package oracle runs exchanges on x/net's ClientConn behind the interface that
// package http2 has. It is what tests and benchmarks hold our own multiplexer
// against, and no part of the product.
package oracle
