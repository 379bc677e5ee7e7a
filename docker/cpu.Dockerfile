# tprimat alone, with its native trainer: tprimat docker build cpu. Of a package that scripts/package.sh deb has made, in
# seconds; else built from the sources, in minutes. With the package also on Ubuntu:
#   docker build --build-arg BASE=ubuntu:22.04 --tag tprimat:cpu --file docker/cpu.Dockerfile .
ARG BASE=debian:12
FROM ${BASE}
COPY . /opt/tprimat/source
RUN sh /opt/tprimat/source/docker/install_cpu.sh
ENV OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
