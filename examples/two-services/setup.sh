#!/bin/sh
# Creates the token that the gateway sends to the writer. An existing one is kept. Use: sh setup.sh
set -eu
forebay token new gateways --scope deliver --file writer-tokens.json --secret writer.token
