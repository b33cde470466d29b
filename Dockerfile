# The image of Forebay: one static binary and the files that it reads. `docker build --tag forebay .` builds it from the sources.
# `cargo xtask image` builds the same image without a registry, from a binary of the machine. See docs/guides/containers.md.

FROM rust:1.95.0-slim-bookworm AS build
WORKDIR /source
COPY . .
# The target is named so that crt-static isn't applied to procedural macros, which are shared libraries.
RUN target="$(rustc -vV | sed -n 's/^host: //p')" \
    && cargo build --profile dist --locked --package forebay --bin forebay --target "$target" \
        --config "target.$target.rustflags=[\"-C\", \"target-feature=+crt-static\", \"-C\", \"force-frame-pointers=yes\"]" \
    && apt-get update && apt-get install --yes --no-install-recommends ca-certificates \
    && mkdir -p rootfs/etc/ssl/certs data \
    && cp "target/$target/dist/forebay" rootfs/forebay \
    && cp packaging/image/* rootfs/etc/ \
    && cp /etc/ssl/certs/ca-certificates.crt rootfs/etc/ssl/certs/

FROM scratch
COPY --from=build /source/rootfs/ /
# A new volume takes its owner from this directory.
COPY --from=build --chown=65532:65532 /source/data/ /data/
LABEL org.opencontainers.image.title="Forebay" \
    org.opencontainers.image.description="Accepts JSON over HTTP, makes it durable, and stores it once in your databases" \
    org.opencontainers.image.licenses="Apache-2.0"
# A default below the configuration file and the environment: a published port of a container doesn't reach loopback. The admin port stays there.
ENV FOREBAY_DATA=/data FOREBAY_DEFAULT_IP=0.0.0.0
USER 65532:65532
WORKDIR /data
VOLUME /data
# Gateways: 8080, admin port 9000. Writers: 8081, admin port 9001.
EXPOSE 8080 8081 9000 9001
# It requests /healthz from the admin port that FOREBAY_ROLE and FOREBAY_CONFIG select. Recovery of a large journal takes time.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s CMD ["/forebay", "health"]
ENTRYPOINT ["/forebay"]
