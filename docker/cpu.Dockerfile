# tprimat alone, with its native trainer, on the system that it is made for: tprimat docker build cpu
FROM debian:12
COPY dependencies.txt docker/install_packages.sh /opt/tprimat/
RUN sh /opt/tprimat/install_packages.sh /opt/tprimat/dependencies.txt
COPY . /opt/tprimat/source
RUN sh /opt/tprimat/source/docker/install_program.sh
ENV OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
