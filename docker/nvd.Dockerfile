# tprimat with PyTorch as NVIDIA builds it, and the frameworks above it: tprimat docker build nvd
# 25.06: CUDA 12.9, PyTorch 2.8, Ubuntu 24.04; driver 575, or a data centre's 535 and later.
FROM nvcr.io/nvidia/pytorch:25.06-py3
COPY dependencies.txt docker/install_packages.sh /opt/tprimat/
RUN sh /opt/tprimat/install_packages.sh /opt/tprimat/dependencies.txt
COPY . /opt/tprimat/source
RUN sh /opt/tprimat/source/docker/install_program.sh
RUN sh /opt/tprimat/source/docker/install_frameworks.sh tran fsdp deep
ENV TPRIMAT_FRAMEWORKS=/opt/tprimat/frameworks OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
