# tprimat with PyTorch, Megatron-LM and Primus as AMD builds them: tprimat docker build amd
# v26.3: ROCm 7.2.1, PyTorch 2.10, Python 3.12, for MI300X, MI325X, MI350X and MI355X.
FROM rocm/primus:v26.3
COPY dependencies.txt docker/install_packages.sh /opt/tprimat/
RUN sh /opt/tprimat/install_packages.sh /opt/tprimat/dependencies.txt
COPY . /opt/tprimat/source
RUN sh /opt/tprimat/source/docker/install_program.sh
RUN sh /opt/tprimat/source/docker/install_frameworks.sh tran fsdp deep
ENV TPRIMAT_FRAMEWORKS=/opt/tprimat/frameworks OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
