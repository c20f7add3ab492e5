package interceptors

import "strings"

// fieldSet is a set of the fields that the Bridge knows.
type fieldSet uint16

const (
	fieldHost fieldSet = 1 << iota
	fieldRange
	fieldCookie
	fieldTrailer
	fieldUserAgent
	fieldConnection
	fieldAuthorization
	fieldContentLength
	fieldAcceptEncoding
	fieldTransferEncoding
)

// fieldOf is the field called name, in any case of letters; 0 for others.
func fieldOf(name string) fieldSet {
	switch len(name) {
	case len("Host"):
		return match(name, "Host", fieldHost)
	case len("Range"):
		return match(name, "Range", fieldRange)
	case len("Cookie"):
		return match(name, "Cookie", fieldCookie)
	case len("Trailer"):
		return match(name, "Trailer", fieldTrailer)
	case len("User-Agent"): // and Connection
		return match(name, "User-Agent", fieldUserAgent) | match(name, "Connection", fieldConnection)
	case len("Authorization"):
		return match(name, "Authorization", fieldAuthorization)
	case len("Content-Length"):
		return match(name, "Content-Length", fieldContentLength)
	case len("Accept-Encoding"):
		return match(name, "Accept-Encoding", fieldAcceptEncoding)
	case len("Transfer-Encoding"):
		return match(name, "Transfer-Encoding", fieldTransferEncoding)
	}
	return 0
}

func match(name, want string, field fieldSet) fieldSet {
	if name == want || strings.EqualFold(name, want) {
		return field
	}
	return 0
}
