#!/bin/sh
# Creates a certificate for this machine and three tokens. What exists is kept. Use: sh setup.sh
set -eu
umask 077

if [ ! -e server.pem ]; then
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 365 \
    -subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1 -addext basicConstraints=critical,CA:FALSE \
    -keyout server.key -out server.pem 2>&1
fi

# NAME.token has the token itself, for the client. tokens.json has its digest, for the server.
forebay token new shop --scope ingest --expires 90d --file tokens.json --secret shop.token
forebay token new reports --scope read --file tokens.json --secret reports.token
forebay token new ops --scope admin --file tokens.json --secret ops.token
forebay token list --file tokens.json
