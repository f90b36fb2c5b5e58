#!/bin/sh
# PostgreSQL 15 on two machines of Debian 12: a server, and a standby that has each commit before it is acknowledged.
# docs/cluster.md says on which machine to run which step. Change the two passwords before.
set -eu
PASSWORD=change-me STANDBY_PASSWORD=change-me-too
SETTINGS=/etc/postgresql/15/main/conf.d/cloudphone.conf DATA=/var/lib/postgresql/15/main

case "${1-}" in
authority) # authority HOST...: an authority, and a certificate for each host. Keep ca.key apart
    shift
    openssl req -x509 -newkey rsa:2048 -nodes -days 3650 -subj "/CN=cloudphone authority" -keyout ca.key -out ca.pem
    for host; do
        openssl req -newkey rsa:2048 -nodes -subj "/CN=$host" -addext "subjectAltName=IP:$host" -keyout "$host.key" -out "$host.csr"
        openssl x509 -req -in "$host.csr" -CA ca.pem -CAkey ca.key -CAcreateserial -copy_extensions copy -days 825 -out "$host.pem"
    done
    ;;
settings) # settings NAME HOST: TLS and access, in a folder with ca.pem, HOST.pem and HOST.key
    sudo install -o postgres -m 644 ca.pem /etc/postgresql/ca.pem
    sudo install -o postgres -m 644 "$3.pem" /etc/postgresql/server.pem
    sudo install -o postgres -m 600 "$3.key" /etc/postgresql/server.key
    sudo tee "$SETTINGS" <<EOF
listen_addresses = 'localhost, $3'
cluster_name = '$2'
ssl = on
ssl_cert_file = '/etc/postgresql/server.pem'
ssl_key_file = '/etc/postgresql/server.key'
EOF
    sudo tee -a /etc/postgresql/15/main/pg_hba.conf <<EOF
hostssl cloudphone  cloudphone 10.0.0.0/24 scram-sha-256
hostssl replication standby    10.0.0.0/24 scram-sha-256
EOF
    echo "*:*:*:standby:$STANDBY_PASSWORD" | sudo -u postgres sh -c 'umask 077; cat > ~/.pgpass'
    sudo pg_ctlcluster 15 main restart
    ;;
accounts) # the accounts and the database, on the server
    sudo -u postgres psql -c "CREATE ROLE cloudphone LOGIN PASSWORD '$PASSWORD'" \
        -c "CREATE ROLE standby REPLICATION LOGIN PASSWORD '$STANDBY_PASSWORD'" \
        -c "GRANT pg_read_all_stats TO cloudphone" \
        -c "CREATE DATABASE cloudphone OWNER cloudphone ENCODING 'UTF8' LOCALE 'C' TEMPLATE template0"
    ;;
standby) # standby OTHER: deletes the data of this machine, and makes it the standby of the other
    sudo pg_ctlcluster 15 main stop || true
    sudo find "$DATA" -mindepth 1 -delete
    sudo -u postgres pg_basebackup --write-recovery-conf --checkpoint=fast --pgdata="$DATA" \
        --dbname="host=$2 user=standby sslmode=verify-full sslrootcert=/etc/postgresql/ca.pem"
    sudo pg_ctlcluster 15 main start
    ;;
synchronous) # lets each commit wait for the standby
    echo "synchronous_standby_names = 'ANY 1 (one, two)'" | sudo tee -a "$SETTINGS"
    sudo pg_ctlcluster 15 main reload
    ;;
*)
    grep -o '^[a-z]*) #.*' "$0" && exit 2
    ;;
esac
