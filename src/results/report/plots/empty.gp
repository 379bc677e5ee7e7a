# A panel for which no run has anything.
unset tics
set border 0
unset label
set label 1 'not recorded' at graph 0.5,0.5 center font ',14' textcolor rgb '#888888'
plot [0:1][0:1] -1 notitle
