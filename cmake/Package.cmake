# The Debian package (scripts/package.sh deb): what cmake/Install.cmake lays, below /usr.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME tprimat)
# The field must have an address; reports go to the project's page, and .invalid tells mailers that this is none.
set(CPACK_PACKAGE_CONTACT "The TensorPrimat developers <noreply@tprimat.invalid>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "measures and compares the training speed of language models")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
"tprimat trains a language model on this machine, with its own trainer or in
another framework, or reads the log of a training that has run elsewhere.
It compares speed, cost and distance from the hardware's limit, and checks
whether the comparison is fair. It also plans layouts for many GPUs.
.
The package brings the trainer for processors, the module for trainings of
several ranks over MPI, manual pages, completions for bash, zsh and fish,
and the Python package tprimat.")
# What is linked or loaded at once; dpkg-shlibdeps computes libc6's version out of the symbols used.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "openmpi-bin, openssh-client, python3 (>= 3.10)")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "gnuplot-nox | python3-matplotlib, podman, python3-venv, python3-pandas, nsight-systems-cli")
foreach(script IN ITEMS postinst prerm postrm)
  list(APPEND CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${CMAKE_SOURCE_DIR}/cmake/debian/${script})
endforeach()
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_SOURCE_DIR}/cmake/debian/Finish.cmake)
include(CPack)
